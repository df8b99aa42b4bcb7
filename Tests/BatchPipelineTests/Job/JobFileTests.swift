import BatchIdentifiers
import BatchPipeline
import BatchTestSupport
import SystemPackage
import Testing

@Suite struct JobFileTests {
  @Test func `a file that is not there is named`() {
    let error = #expect(throws: BatchError.self) { try Job(contentsOf: "/nowhere/job.json") }
    #expect(error?.code == .fileAccess)
    #expect(
      error?.description
        == "/nowhere/job.json: cannot read the job file: No such file or directory; "
        + "check the path"
    )
  }

  @Test func `a folder is no job file`() {
    let error = #expect(throws: BatchError.self) { try Job(contentsOf: "/tmp") }
    #expect(error?.description == "/tmp: cannot read the job file: Is a directory")
  }

  @Test func `a file without end is refused`() {
    let error = #expect(throws: BatchError.self) { try Job(contentsOf: "/dev/zero") }
    #expect(error?.message == "the file has more than 16777216 bytes")
  }

  @Test(arguments: ["delays", "purge", "export"])
  func `the example jobs are valid`(name: String) throws {
    let folder = Repository.root.appending("Examples").appending("Flights")
    let job = try Job(contentsOf: folder.appending("\(name).json"))
    #expect(job.name == "flights-\(name)")
    #expect(job.database.path == folder.appending("flights.db"))
    #expect(job.checkpointPath == folder.appending("\(name).batch"))
    #expect(job.source.entity == "flights")
  }
}

/// The folder of the package.
enum Repository {
  static var root: FilePath {
    var path = FilePath(#filePath)
    for _ in 0..<4 { path.removeLastComponent() }
    return path
  }
}
