import BatchIdentifiers
import Foundation
import SystemPackage

/// A list of the size that the project is designed for: memory while it is built, and the time to open it.
struct ScaleBenchmark {
  let count: Int

  struct Result: Codable {
    var identifiers: Int
    var listBytes: Int
    var fileBytes: Int
    var bitsPerIdentifier: Double
    var residentBeforeBytes: Int
    var residentPeakBytes: Int
    var peakAboveStartToList: Double
    var buildSeconds: Double
    var writeSeconds: Double
    var openSeconds: Double
    var firstThousandSeconds: Double
    var verifySeconds: Double
  }

  func run(asJSON: Bool) throws {
    let path = FilePath(NSTemporaryDirectory()).appending("scale-\(getpid()).ids")
    defer { unlink(path.string) }
    let clock = ContinuousClock()
    let before = Self.resident("VmRSS")
    var generator = SplitMix64(state: 1)
    var list: IdentifierList?
    let build = clock.measure {
      var builder = IdentifierListBuilder(storeIdentifier: "", entityName: "orders")
      var key: Int64 = 0
      for _ in 0..<count {
        // Geometric steps: each number is a key with a probability of a tenth.
        let unit = Double(generator.next() >> 11) * 0x1p-53
        key += Int64(log(1 - unit) / log(0.9)) + 1
        builder.append(key)
      }
      list = builder.finish()
    }
    let peak = Self.resident("VmHWM")
    guard let built = list else { return }
    var failure: (any Error)?
    let write = clock.measure {
      do { try IdentifierFile.create(at: path, list: built) } catch { failure = error }
    }
    let bytes = built.payloadByteCount
    let fileBytes = built.fileByteCount
    list = nil
    var file: IdentifierFile?
    let open = clock.measure {
      do { file = try IdentifierFile(opening: path) } catch { failure = error }
    }
    let first = clock.measure {
      do {
        let middle = count / 2
        _ = try file?.integers(in: middle..<(middle + 1000))
      } catch { failure = error }
    }
    let verify = clock.measure { do { try file?.verify() } catch { failure = error } }
    if let failure { throw failure }
    let result = Result(
      identifiers: count,
      listBytes: bytes,
      fileBytes: fileBytes,
      bitsPerIdentifier: Double(bytes * 8) / Double(count),
      residentBeforeBytes: before,
      residentPeakBytes: peak,
      peakAboveStartToList: Double(peak - before) / Double(bytes),
      buildSeconds: Measurement.seconds(build),
      writeSeconds: Measurement.seconds(write),
      openSeconds: Measurement.seconds(open),
      firstThousandSeconds: Measurement.seconds(first),
      verifySeconds: Measurement.seconds(verify)
    )
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    print(String(decoding: try encoder.encode(result), as: UTF8.self))
  }

  /// A field of this process's status, in bytes.
  static func resident(_ field: String) -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    for line in status.split(separator: "\n") where line.hasPrefix(field + ":") {
      return (Int(line.split(whereSeparator: { $0 == " " || $0 == "\t" })[1]) ?? 0) * 1024
    }
    return 0
  }
}
