// Fetches the identifiers of the flights that match, as a library call.
//
// usage: FetchBenchmark DATABASE CONDITION READERS

import BatchStore
import Foundation

let arguments = CommandLine.arguments
guard arguments.count == 4, let readers = Int(arguments[3]) else {
  print("usage: FetchBenchmark DATABASE CONDITION READERS")
  exit(64)
}
let container = try await ModelContainer(
  configurations: ModelConfiguration(path: arguments[1], isReadOnly: true)
)
let request = FetchRequest(entity: "flights", where: arguments[2])
print(try await container.stores[0].fetchIdentifiers(request, readers: readers).count)
