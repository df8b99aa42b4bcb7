import BatchRuns
package import BatchIdentifiers

package struct JobProblem: Sendable {
  package let path: JobPath
  /// Nil until it is known, and for a job created in code.
  var position: SourcePosition?
  let message: String
  let remedy: String?

  package init(
    _ path: JobPath,
    _ message: String,
    remedy: String? = nil,
    position: SourcePosition? = nil
  ) {
    self.path = path
    self.position = position
    self.message = message
    self.remedy = remedy
  }
}

extension JobProblem {
  package func located(in origin: JobOrigin) -> JobProblem {
    var problem = self
    problem.position = origin.position(of: path)
    return problem
  }
}

extension BatchError {
  /// Makes one error of all problems, in the order of the file; nil if there are none.
  package static func invalidJob(_ problems: [JobProblem], file: String?) -> BatchError? {
    let unknown = SourcePosition(line: 0, column: 0)
    let sorted = problems.enumerated().sorted { first, second in
      (first.element.position ?? unknown, first.offset)
        < (second.element.position ?? unknown, second.offset)
    }
    let errors = sorted.map { _, problem in
      let path = problem.path.description
      let place = [
        file.map { file in problem.position.map { "\(file):\($0)" } ?? file },
        path.isEmpty ? nil : path,
      ].compactMap(\.self).joined(separator: ": ")
      return BatchError(
        .invalidJob,
        problem.message,
        at: place.isEmpty ? nil : place,
        remedy: problem.remedy
      )
    }
    return joining(errors)
  }
}
