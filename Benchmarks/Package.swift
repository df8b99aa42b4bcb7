// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that nobody who uses the library needs CRoaring.
let package = Package(
  name: "batch-benchmarks",
  platforms: [.macOS(.v26)],
  dependencies: [.package(name: "batch", path: "..")],
  targets: [
    .systemLibrary(name: "CRoaring", providers: [.apt(["libroaring-dev"])]),
    .systemLibrary(name: "CLZ4Raw", pkgConfig: "liblz4", providers: [.apt(["liblz4-dev"])]),
    .executableTarget(
      name: "IdentifierListBenchmarks",
      dependencies: [
        "CRoaring",
        "CLZ4Raw",
        .product(name: "BatchIdentifiers", package: "batch"),
      ]
    ),
  ],
  swiftLanguageModes: [.v6]
)
