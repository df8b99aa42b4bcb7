import Foundation

let usage = """
  usage: IdentifierListBenchmarks [--json] FILE…      sets of integers, plain or .gz
         IdentifierListBenchmarks [--json] --synthetic [COUNT]
         IdentifierListBenchmarks [--json] --scale [COUNT]
         IdentifierListBenchmarks [--json] --access

  FILE holds a set a line, its integers separated by commas. --synthetic makes 10,000,000
  identifiers of each of several shapes. --scale builds, writes and opens a list of 100,000,000
  random identifiers out of ten times as many, and shows memory and times. --access times single
  look-ups.
  """

var arguments = Array(CommandLine.arguments.dropFirst())
let isJSON = arguments.contains("--json")
arguments.removeAll { $0 == "--json" }

do {
  switch arguments.first {
  case "--synthetic":
    let count = arguments.dropFirst().first.flatMap { Int($0) } ?? 10_000_000
    try SyntheticBenchmark(count: count).run(asJSON: isJSON)
  case "--scale":
    let count = arguments.dropFirst().first.flatMap { Int($0) } ?? 100_000_000
    try ScaleBenchmark(count: count).run(asJSON: isJSON)
  case "--access":
    try AccessBenchmark().run(asJSON: isJSON)
  case .some(let name) where !name.hasPrefix("-"):
    try FileBenchmark(paths: arguments).run(asJSON: isJSON)
  default:
    print(usage)
    exit(arguments.isEmpty || arguments.first == "--help" ? 0 : 64)
  }
} catch {
  FileHandle.standardError.write(Data("\(error)\n".utf8))
  exit(1)
}
