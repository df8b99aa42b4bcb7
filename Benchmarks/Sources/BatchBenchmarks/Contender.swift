/// One way to do a case's work: ours, or a twin.
struct Contender {
  /// What a contender needs that a machine may lack.
  enum Need: Hashable {
    case command(String)
    case pythonModule(String)
    case rubyLibrary(String)
  }

  /// Which of the two flight tables it works on: slow twins get the small one and are compared by rows per second.
  enum Scale: Int {
    case once = 1
    case tenfold = 10
  }

  let name: String
  /// The program and its arguments; `{db}` stands for the database, `{dir}` for its folder.
  let arguments: [String]
  var scale = Scale.tenfold
  /// The table that it works on; nil for flights.
  var table: Table?
  var needs: [Need] = []
  /// Files to put into its working folder, by name: job files.
  var files: [String: String] = [:]
  /// The file in the folder for its standard output; nil discards it.
  var output: String?
  /// Statements that prepare its database.
  var preparation: String?
  /// Whether the others are compared with it.
  var isOurs = false
}

/// A task and its contenders.
struct Case {
  let name: String
  /// A description of the work, for readers of the table.
  let title: String
  /// A query whose result must be the same for all contenders; nil if nothing is written.
  var check: String?
  let contenders: [Contender]
}
