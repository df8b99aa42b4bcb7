import BatchPipeline
import Dispatch
import Foundation

/// Works each night, until it is told to stop.
@main struct ETL {
  static func main() async {
    let arguments = CommandLine.arguments.dropFirst()
    guard let folder = arguments.first, arguments.count <= 2 else {
      say("usage: ETL FOLDER [SECONDS BETWEEN NIGHTS; none for one night]")
      exit(64)
    }
    let pause = arguments.dropFirst().first.flatMap(Double.init)
    let night = Night(folder: FilePath(folder))
    let work = Task {
      try await night.run()
      while let pause {
        try await Task.sleep(for: .seconds(pause))
        try await night.run()
      }
    }
    // The chunks in flight end, and the next process resumes.
    signal(SIGTERM, SIG_IGN)
    let termination = DispatchSource.makeSignalSource(signal: SIGTERM, queue: .global())
    termination.setEventHandler { @Sendable in work.cancel() }
    termination.resume()
    do {
      try await work.value
    } catch  where work.isCancelled {
      say("stopped; the next night goes on")
    } catch {
      FileHandle.standardError.write(Data("error: \(error)\n".utf8))
      exit(1)
    }
  }
}

/// Prints a line at once, also into a log.
func say(_ line: String) {
  FileHandle.standardOutput.write(Data("\(line)\n".utf8))
}
