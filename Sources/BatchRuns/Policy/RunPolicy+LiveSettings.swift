package import BatchIdentifiers

extension RunPolicy {
  /// The settings that can change during a run, by their path in a job file.
  public static let liveSettings = [
    "chunk.size", "chunk.target", "throttle.identifiersPerSecond", "throttle.sleepRatio",
    "throttle.maximumWAL", "throttle.window",
  ]

  /// The values of the settings that can change during a run, as ``adjusted(by:)`` takes them.
  package var liveValues: [(name: String, value: String)] {
    let values: [String: String?] = [
      "chunk.size": "\(chunk.size)",
      "chunk.target": chunk.target?.milliseconds,
      "throttle.identifiersPerSecond": throttle.identifiersPerSecond.map(Self.text),
      "throttle.sleepRatio": throttle.sleepRatio.map(Self.text),
      "throttle.maximumWAL": ByteSize(bytes: throttle.maximumWAL).exactText,
      "throttle.window": throttle.window?.description,
    ]
    return Self.liveSettings.map { ($0, (values[$0] ?? nil) ?? "none") }
  }

  private static func text(_ number: Double) -> String {
    Int(exactly: number).map { "\($0)" } ?? "\(number)"
  }

  /// The policy with some settings replaced; the text `none` removes one.
  package func adjusted(by settings: [String: String]) throws(BatchError) -> RunPolicy {
    var policy = self
    for (name, text) in settings {
      let isNone = text == "none"
      do throws(BatchError) {
        switch name {
        case "chunk.size":
          let size = try Self.number(Int(text), text)
          // Like --chunk-size, it turns the target off.
          if settings["chunk.target"] == nil { policy.chunk = Chunk(size: size) }
          policy.chunk.size = size
        case "chunk.target" where isNone: policy.chunk = Chunk(size: policy.chunk.size)
        case "chunk.target": policy.chunk.target = try Duration(parsing: text)
        case "throttle.identifiersPerSecond":
          policy.throttle.identifiersPerSecond = isNone ? nil : try Self.number(Double(text), text)
        case "throttle.sleepRatio":
          policy.throttle.sleepRatio = isNone ? nil : try Self.number(Double(text), text)
        case "throttle.maximumWAL": policy.throttle.maximumWAL = try ByteSize(parsing: text).bytes
        case "throttle.window":
          policy.throttle.window = isNone ? nil : try DailyWindow(parsing: text)
        default:
          throw BatchError(
            .invalidJob,
            "cannot be changed in a live run",
            remedy: remedyForUnknownName(name, among: Self.liveSettings, kind: "settings that can")
          )
        }
      } catch {
        throw error.located(at: name)
      }
    }
    try policy.validate()
    return policy
  }

  private static func number<Number>(_ number: Number?, _ text: String) throws(BatchError) -> Number
  {
    if let number { return number }
    throw BatchError(.invalidJob, "\(text.quotedForMessage) is not a number", remedy: nil)
  }
}

extension Duration {
  /// The duration in whole milliseconds.
  fileprivate var milliseconds: String { "\(Int((self / .milliseconds(1)).rounded()))ms" }
}
