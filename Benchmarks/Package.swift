// swift-tools-version: 6.2

import PackageDescription

// A separate package, so that users of the library need neither CRoaring nor GRDB.
let package = Package(
  name: "batch-benchmarks",
  platforms: [.macOS(.v26)],
  dependencies: [
    .package(name: "batch", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
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
    .executableTarget(
      name: "BatchBenchmarks",
      dependencies: [.product(name: "ArgumentParser", package: "swift-argument-parser")]
    ),
    .executableTarget(
      name: "LibraryBenchmark",
      dependencies: [.product(name: "BatchObjects", package: "batch")]
    ),
    .executableTarget(
      name: "ContextBenchmark",
      dependencies: [.product(name: "BatchObjects", package: "batch")]
    ),
    .executableTarget(
      name: "TransformBenchmark",
      dependencies: [
        .product(name: "BatchObjects", package: "batch"),
        .product(name: "BatchPipeline", package: "batch"),
        .product(name: "BatchTool", package: "batch"),
      ]
    ),
    .executableTarget(name: "measure"),
    .executableTarget(
      name: "CTwin",
      cSettings: [.unsafeFlags(["-O2"])],
      linkerSettings: [
        .linkedLibrary("sqlite3"), .linkedLibrary("pthread", .when(platforms: [.linux])),
      ]
    ),
    .executableTarget(
      name: "GRDBTwin",
      dependencies: [.product(name: "GRDB", package: "GRDB.swift")]
    ),
  ],
  swiftLanguageModes: [.v6]
)
