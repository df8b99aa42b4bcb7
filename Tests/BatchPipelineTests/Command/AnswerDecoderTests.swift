import BatchIdentifiers
@testable import BatchJobs
import Testing

@testable import BatchPipeline
@testable import BatchSQLite

/// The lines that a program answers with, without a program.
@Suite struct AnswerDecoderTests {
  private let decoder = AnswerDecoder(columns: ["n", "label"])

  /// The rows with the keys 1 to `count`.
  private func rows(_ count: Int) -> ChunkRows {
    let values = ValueBlock(columns: 0, capacity: count, count: count)
    return ChunkRows(values, of: [], numbers: Array(0..<count)) { .integer(Int64($0) + 1) }
  }

  /// Reads answers to a number of rows.
  private func read(
    _ text: String,
    for count: Int
  ) throws(BatchError) -> (answers: RowChanges, areIdentified: Bool) {
    let rows = rows(count)
    var answers = decoder.noAnswers(for: rows)
    let areIdentified = try decoder.read(
      Array(text.utf8),
      for: rows,
      0..<count,
      into: &answers
    )
    return (answers, areIdentified)
  }

  @Test func `an answer sets the values in its line and keeps the others`() throws {
    let (answers, areIdentified) = try read(
      """
      {"n": 5, "label": "five"}
      null
      {"label": null, "$identifier": "3"}
      {}

      """,
      for: 4
    )
    let values = answers.values
    #expect(values.value(0, 0) == .integer(5) && values.value(0, 1) == .text("five"))
    #expect((0..<4).map { values.isSet($0) } == [true, false, true, false])
    #expect(values.kind(2, 0) == .unset && values.kind(2, 1) == .null)
    #expect(!areIdentified && answers.failures.isEmpty && answers.postponed.isEmpty)
  }

  @Test func `answers count as identified only if each repeats its identifier`() throws {
    let lines = (1...3).map { #"{"$identifier": "\#($0)", "n": \#($0)}"# + "\n" }
    #expect(try read(lines.joined(), for: 3).areIdentified)
    #expect(try !read(lines[0] + lines[1] + "{\"n\": 3}\n", for: 3).areIdentified)
  }

  @Test(arguments: [
    // Out of order.
    ("{\"$identifier\": \"2\"}\n{\"$identifier\": \"1\"}\n", "1 is for identifier \"2\""),
    ("{}\n{\"$identifier\": \"77\"}\n", "2 is for identifier \"77\""),
  ])
  func `the error of an answer for another row names that row's identifier`(
    lines: String,
    message: String
  ) throws {
    let error = #expect(throws: BatchError.self) { _ = try read(lines, for: 2) }
    #expect(error?.code == .handlerFailed)
    #expect(error?.message.contains("answer for identifier \(message)") == true)
  }

  @Test(arguments: [
    ("{\"$identifier\": 2}", "has a number where \"$identifier\" must be a string"),
    ("{\"m\": 1}", "has an unknown column \"m\""),
    ("{\"n\": 1} {}", "goes on after its end"),
    ("", "is not a JSON object"), ("{", "has no string"),
    ("{\"n\": NaN}", "has no JSON value where one is expected, in the column \"n\""),
    // The line ends where a character is expected.
    ("{\"label\": \"\\", "has an unknown escape"), ("{\"label\": \"\\u00", "has an unknown escape"),
    (
      "{\"label\": {\"$base64\": true, \"encoded\": \"6Q==\", \"type\": \"blob\"}}",
      "has bytes whose type is not \"text\", in the column \"label\""
    ),
    (
      "{\"label\": {\"encoded\": \"6Q==\", \"type\": \"text\"}}",
      "has an object without \"$base64\" and \"encoded\" where a value is expected, in the column \"label\""
    ),
    (
      "{\"label\": {\"$base64\": true, \"encoded\": \"caf\u{e9}\"}}",
      "has an \"encoded\" that is not Base64, \"caf\u{e9}\", in the column \"label\""
    ),
    (
      "{\"label\": {\"$base64\": false, \"encoded\": \"\"}}",
      "has a \"$base64\" that is not true, in the column \"label\""
    ),
  ])
  func `an unreadable answer fails only its own row`(
    line: String,
    message: String
  ) throws {
    let (answers, areIdentified) = try read("{\"n\": 1}\n\(line)\n{\"n\": 3}\n", for: 3)
    #expect(answers.failures.map(\.row) == [1])
    #expect(answers.failures[0].error.code == .handlerFailed)
    #expect(answers.failures[0].error.message.hasPrefix("the command's answer \(message)"))
    #expect((0..<3).map { answers.values.isSet($0) } == [true, false, true])
    #expect(!areIdentified)
  }

  @Test func `a row answered with an error fails alone and gets no values`() throws {
    let changes = try read(
      "{\"n\": 1}\n{\"n\": 2, \"$error\": \"too\\nlarge\"}\n{\"n\": 3}\n",
      for: 3
    ).answers
    #expect(changes.failures.map(\.row) == [1])
    #expect(changes.failures[0].error.message == "the command says: too large")
    #expect((0..<3).map { changes.values.isSet($0) } == [true, false, true])
  }

  @Test func `an answer may postpone its row with a reason, and an error in it prevails`() throws {
    let answers = try read(
      "{}\n{\"n\": 1, \"$retry\": \"closed\"}\n{\"$error\": \"no\", \"$retry\": \"busy\"}\n",
      for: 3
    ).answers
    #expect(answers.postponed.map(\.row) == [1])
    #expect(answers.postponed[0].error.code == .retryLater)
    #expect(answers.postponed[0].error.message == "the command asks for a retry: closed")
    #expect(answers.failures.map(\.row) == [2])
    #expect((0..<3).map { answers.values.isSet($0) } == [false, false, false])
  }
}
