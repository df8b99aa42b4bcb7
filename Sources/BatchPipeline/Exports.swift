// A service needs only one import: the API of runs uses types of all these modules, including
// paths.
@_exported public import BatchRuns
@_exported public import BatchIdentifiers
@_exported public import BatchJobs
@_exported public import BatchSQLite
@_exported public import SystemPackage
