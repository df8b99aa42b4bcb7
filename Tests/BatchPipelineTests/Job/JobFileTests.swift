import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import SystemPackage
import Testing

@Suite struct JobFileTests {
  @Test func `the error of a missing job file names it`() {
    let error = #expect(throws: BatchError.self) { try Job(contentsOf: "/nowhere/job.json") }
    #expect(error?.code == .fileAccess)
    #expect(
      error?.description
        == "/nowhere/job.json: cannot read the job file: No such file or directory; "
        + "check the path"
    )
  }

  @Test func `a folder is refused as a job file`() {
    let error = #expect(throws: BatchError.self) { try Job(contentsOf: "/tmp") }
    #expect(error?.description == "/tmp: cannot read the job: Is a directory")
  }

  @Test func `an endless job file is refused`() {
    let error = #expect(throws: BatchError.self) { try Job(contentsOf: "/dev/zero") }
    #expect(error?.message == "the file has more than 16,777,216 bytes")
  }

  @Test func `a job file must differ from its checkpoint and its export`() {
    let error = #expect(throws: BatchError.self) {
      try Job(json: Array(CompleteJob.export.utf8), file: "jobs/a.batch", baseDirectory: "jobs")
    }
    #expect(
      error?.description
        == "jobs/a.batch:1:1: checkpoint.path: the checkpoint and the job file are the same file; "
        + "choose another path"
    )
    let second = #expect(throws: BatchError.self) {
      try Job(json: Array(CompleteJob.export.utf8), file: "orders.csv")
    }
    #expect(second?.message == "the exported file and the job file are the same file")
  }

  @Test func `the error of a job with only unknown keys is short`() {
    let keys = (0..<20_000).map { "\"key\($0)\":0" }.joined(separator: ",")
    let error = #expect(throws: BatchError.self) { try Job(json: Array("{\(keys)}".utf8)) }
    #expect(error?.message.hasSuffix("and 19,905 more") == true)
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
