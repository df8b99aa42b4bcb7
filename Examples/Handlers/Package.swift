// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "flights",
  platforms: [.macOS(.v26)],
  dependencies: [.package(name: "batch", path: "../..")],
  targets: [
    .executableTarget(
      name: "flights",
      dependencies: [
        .product(name: "BatchTool", package: "batch"),
        .product(name: "BatchPipeline", package: "batch"),
      ]
    )
  ],
  swiftLanguageModes: [.v6]
)
