// Fetches the identifiers of the flights that match, as a library call.
//
// usage: FetchBenchmark DATABASE CONDITION

import BatchStore
import Foundation

let arguments = CommandLine.arguments
guard arguments.count == 3 else {
  print("usage: FetchBenchmark DATABASE CONDITION")
  exit(64)
}
let container = try await ModelContainer(
  configurations: ModelConfiguration(path: arguments[1], isReadOnly: true)
)
let request = FetchRequest(entity: "flights", where: arguments[2])
print(try await container.stores[0].fetchIdentifiers(request).count)
