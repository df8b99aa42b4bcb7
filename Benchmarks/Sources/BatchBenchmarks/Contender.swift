/// One way to do what a case asks for: ours, or a twin.
struct Contender {
  /// What a contender needs that a machine may lack.
  enum Need: Hashable {
    case command(String)
    case pythonModule(String)
    case rubyLibrary(String)
  }

  /// Which of the two tables of flights it works on: slow twins get the small one, and are compared
  /// by rows a second.
  enum Scale: Int {
    case once = 1
    case tenfold = 10
  }

  let name: String
  /// The program and its arguments; `{db}` stands for the database, `{dir}` for its folder.
  let arguments: [String]
  var scale = Scale.tenfold
  var needs: [Need] = []
  /// Files of the folder it runs in, by name: job files.
  var files: [String: String] = [:]
  /// Where its standard output goes, in the folder; nowhere if nil.
  var output: String?
  /// Statements that prepare the database for it.
  var preparation: String?
  /// Whether it is what the others are compared with.
  var isOurs = false
}

/// Something to be done, and those who do it.
struct Case {
  let name: String
  /// Its work, for readers of the table.
  let title: String
  /// A query whose result must be the same for all contenders; nil if nothing is written.
  var check: String?
  let contenders: [Contender]
}
