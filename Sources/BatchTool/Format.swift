import BatchRuns
import BatchIdentifiers
import BatchPipeline

enum Format {
  /// Formats `1 chunk`, `2 chunks`.
  static func count(_ value: Int, _ noun: String) -> String {
    "\(value.grouped) \(noun)\(value == 1 ? "" : "s")"
  }

  /// Formats `1 try`, `2 tries`.
  static func count(_ value: Int, _ noun: String, _ plural: String) -> String {
    "\(value.grouped) \(value == 1 ? noun : plural)"
  }

  /// Formats `4.2 MB`.
  static func bytes(_ value: Int) -> String { "\(ByteSize(bytes: Int64(value)))" }

  /// Formats `821,000`, `4.2`: a low rate keeps its decimals.
  static func rate(_ value: Double) -> String {
    value < 10 ? "\((value * 1000).rounded() / 1000)" : Int(value).grouped
  }

  /// Formats `0.41 s`, `3:05`, `2:10:00`.
  static func seconds(_ value: Double) -> String { Duration.seconds(value).shown }

  /// Formats `336,776 rows, 1.2 MB, until 2026-11-29T10:00:00Z`.
  static func undo(_ undo: UndoableRun) -> String {
    let time = undo.keptUntil.map { ", until \($0)" } ?? ""
    let isUndone =
      if let done = undo.undo { "; \(done.words(ofRows: undo.rows))" } else if undo.isUndone {
        "; an undo has begun"
      } else { "" }
    return "\(count(undo.rows, "row")), \(bytes(undo.bytes))\(time)\(isUndone)"
  }

  static func decimal(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
