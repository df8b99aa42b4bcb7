// swift-tools-version: 6.2

import CompilerPluginSupport
import PackageDescription

/// What every Swift target is compiled with.
let settings: [SwiftSetting] = [
  // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0335-existential-any.md
  .enableUpcomingFeature("ExistentialAny"),
  // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0409-access-level-on-imports.md
  .enableUpcomingFeature("InternalImportsByDefault"),
  // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0444-member-import-visibility.md
  .enableUpcomingFeature("MemberImportVisibility"),
  // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0461-async-function-isolation.md
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0470-isolated-conformances.md
  .enableUpcomingFeature("InferIsolatedConformances"),
  // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0481-weak-let.md
  .enableUpcomingFeature("ImmutableWeakCaptures"),
]

/// Targets of the trait `Macros`: without it, nobody fetches or builds swift-syntax.
let withMacros = TargetDependencyCondition.when(traits: ["Macros"])
/// Targets of the trait `PostgreSQL`: without it, nobody needs libpq.
let withPostgreSQL = TargetDependencyCondition.when(traits: ["PostgreSQL"])

let package = Package(
  name: "batch",
  platforms: [.macOS(.v26)],
  products: [
    .library(name: "BatchTool", targets: ["BatchTool"]),
    .library(name: "BatchPipeline", targets: ["BatchPipeline"]),
    .library(name: "BatchObjects", targets: ["BatchObjects"]),
    .library(name: "BatchMacros", targets: ["BatchMacros"]),
    .library(name: "BatchSQLite", targets: ["BatchSQLite"]),
    .library(name: "BatchPostgres", targets: ["BatchPostgres"]),
    .library(name: "BatchRuns", targets: ["BatchRuns"]),
    .library(name: "BatchIdentifiers", targets: ["BatchIdentifiers"]),
    .library(name: "BatchParquet", targets: ["BatchParquet"]),
    .executable(name: "batch", targets: ["BatchCommand"]),
  ],
  traits: [
    .trait(
      name: "Macros",
      description: "@Model and its kin, in product BatchMacros; builds swift-syntax."
    ),
    .trait(
      name: "PostgreSQL",
      description: "PostgreSQL as a store, in product BatchPostgres; needs libpq."
    ),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
    .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", "602.0.0"..<"604.0.0"),
  ],
  targets: [
    .systemLibrary(
      name: "CSQLite",
      pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]
    ),
    .systemLibrary(
      name: "CLZ4",
      pkgConfig: "liblz4",
      providers: [.apt(["liblz4-dev"]), .brew(["lz4"])]
    ),
    .systemLibrary(
      name: "CZlib",
      pkgConfig: "zlib",
      providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]
    ),
    .systemLibrary(
      name: "CZstd",
      pkgConfig: "libzstd",
      providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]
    ),
    .systemLibrary(name: "CSpawn"),
    // No `pkgConfig`: where libpq is missing, that would be a warning of builds that do without it.
    .systemLibrary(
      name: "CPostgres",
      providers: [.apt(["libpq-dev"]), .brew(["libpq"])]
    ),
    .target(name: "BatchPlatform", swiftSettings: settings),
    .target(
      name: "BatchIdentifiers",
      dependencies: [
        "BatchPlatform", "CLZ4",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      // Lifetimes: types of our own hold spans, and functions return parts of them, which take
      // annotations that are not in the language yet. It is an experiment that is supported.
      // https://forums.swift.org/t/pitch-2-lifetime-dependencies-for-non-escapable-values/78821
      swiftSettings: settings + [.strictMemorySafety(), .enableExperimentalFeature("Lifetimes")]
    ),
    .target(
      name: "BatchParquet",
      dependencies: ["CLZ4"],
      swiftSettings: settings + [.strictMemorySafety()]
    ),
    .target(
      name: "BatchRuns",
      dependencies: [
        "BatchIdentifiers", "BatchParquet", "BatchPlatform", "CZlib", "CZstd",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: settings + [.strictMemorySafety()]
    ),
    .target(
      name: "BatchJobs",
      dependencies: [
        "BatchRuns", "BatchParquet", "BatchIdentifiers", "BatchPlatform", "CSpawn",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: settings + [.strictMemorySafety()]
    ),
    .target(
      name: "BatchSQLite",
      dependencies: [
        "BatchJobs", "BatchRuns", "BatchIdentifiers", "BatchPlatform", "CSQLite",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: settings + [.strictMemorySafety()]
    ),
    .target(
      name: "BatchPostgres",
      dependencies: [
        "BatchJobs", "BatchRuns", "BatchIdentifiers", "BatchPlatform",
        .target(name: "CPostgres", condition: withPostgreSQL),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: settings + [.strictMemorySafety()]
    ),
    .target(
      name: "BatchPipeline",
      dependencies: [
        "BatchRuns", "BatchIdentifiers", "BatchJobs", "BatchPlatform", "BatchSQLite",
        .target(name: "BatchPostgres", condition: withPostgreSQL),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: settings + [.strictMemorySafety()]
    ),
    .target(
      name: "BatchObjects",
      dependencies: [
        "BatchPipeline", "BatchJobs", "BatchSQLite", "BatchRuns", "BatchIdentifiers",
        "BatchPlatform",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: settings + [.strictMemorySafety()]
    ),
    .macro(
      name: "BatchMacroExpansions",
      dependencies: [
        .product(name: "SwiftCompilerPlugin", package: "swift-syntax", condition: withMacros),
        .product(name: "SwiftDiagnostics", package: "swift-syntax", condition: withMacros),
        .product(name: "SwiftSyntax", package: "swift-syntax", condition: withMacros),
        .product(name: "SwiftSyntaxBuilder", package: "swift-syntax", condition: withMacros),
        .product(name: "SwiftSyntaxMacros", package: "swift-syntax", condition: withMacros),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "BatchMacros",
      dependencies: [
        "BatchIdentifiers", "BatchObjects", "BatchSQLite",
        .target(name: "BatchMacroExpansions", condition: withMacros),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "BatchTool",
      dependencies: [
        "BatchPipeline", "BatchJobs", "BatchSQLite", "BatchRuns", "BatchIdentifiers",
        "BatchPlatform",
        .product(name: "SystemPackage", package: "swift-system"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      // What `batch explain` shows: links to the pages themselves, which thus have no copy.
      resources: [.embedInCode("JobFile.md"), .embedInCode("job.schema.json")],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "BatchCommand",
      dependencies: ["BatchTool"],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "IdentifierExamples",
      dependencies: [
        "BatchObjects",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Examples/Identifiers",
      exclude: ["README.md", "Output"],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "Shop",
      dependencies: [
        "BatchObjects",
        .target(name: "BatchMacros", condition: withMacros),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Examples/Shop",
      exclude: ["README.md", "Tables.sql"],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "ETL",
      dependencies: ["BatchPipeline"],
      path: "Examples/ETL",
      exclude: ["README.md", "Tables.sql"],
      swiftSettings: settings
    ),
    // What benchmarks measure of PostgreSQL: see Scripts/bench-postgres.
    .executableTarget(
      name: "PostgresBenchmark",
      dependencies: ["BatchPostgres", "BatchIdentifiers", "BatchSQLite", "BatchTool"],
      path: "Benchmarks/Sources/PostgresBenchmark",
      swiftSettings: settings
    ),
    .target(
      name: "BatchTestSupport",
      dependencies: [
        "BatchIdentifiers", "BatchSQLite", "CZlib", "CZstd",
        .target(name: "BatchPostgres", condition: withPostgreSQL),
      ],
      path: "Tests/BatchTestSupport",
      exclude: ["Fixtures"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "BatchIdentifiersTests",
      dependencies: [
        "BatchIdentifiers",
        "BatchTestSupport",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      exclude: ["Fixtures"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "BatchParquetTests",
      dependencies: ["BatchParquet", "BatchTestSupport"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "BatchRunsTests",
      dependencies: [
        "BatchRuns", "BatchParquet", "BatchIdentifiers", "BatchTestSupport",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "BatchSQLiteTests",
      dependencies: [
        "BatchSQLite", "BatchJobs", "BatchRuns", "BatchIdentifiers", "BatchTestSupport",
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "BatchPostgresTests",
      dependencies: [
        "BatchPostgres", "BatchJobs", "BatchRuns", "BatchIdentifiers", "BatchTestSupport",
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "BatchObjectsTests",
      dependencies: [
        "BatchObjects", "BatchSQLite", "BatchIdentifiers", "BatchTestSupport",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "BatchPipelineTests",
      dependencies: [
        "BatchPipeline", "BatchObjects", "BatchSQLite", "BatchRuns", "BatchIdentifiers",
        "BatchTestSupport",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "CrashingContexts",
      dependencies: [
        "BatchPipeline",
        "BatchObjects",
        "BatchSQLite",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Tests/CrashingContexts",
      swiftSettings: settings
    ),
    .testTarget(
      name: "BatchCommandTests",
      dependencies: [
        "BatchCommand", "BatchTool", "BatchPipeline", "BatchSQLite", "BatchRuns",
        "BatchIdentifiers",
        .target(name: "BatchPostgres", condition: withPostgreSQL),
        "BatchTestSupport", "CrashingContexts",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      exclude: ["Crash/Fault", "Fixtures"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "ExampleTests",
      dependencies: ["IdentifierExamples", "Shop", "ETL", "BatchTestSupport"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "BatchMacrosTests",
      dependencies: [
        .target(name: "BatchMacros", condition: withMacros),
        .target(name: "BatchMacroExpansions", condition: withMacros),
        .product(name: "SwiftDiagnostics", package: "swift-syntax", condition: withMacros),
        .product(name: "SwiftParser", package: "swift-syntax", condition: withMacros),
        .product(name: "SwiftSyntax", package: "swift-syntax", condition: withMacros),
        .product(name: "SwiftSyntaxBuilder", package: "swift-syntax", condition: withMacros),
        .product(
          name: "SwiftSyntaxMacroExpansion",
          package: "swift-syntax",
          condition: withMacros
        ),
        .product(name: "SwiftSyntaxMacros", package: "swift-syntax", condition: withMacros),
        .product(
          name: "SwiftSyntaxMacrosGenericTestSupport",
          package: "swift-syntax",
          condition: withMacros
        ),
      ],
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)
