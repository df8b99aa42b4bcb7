// A service needs one import: the API of runs uses types of all these modules, including paths.
@_exported public import BatchEngine
@_exported public import BatchIdentifiers
@_exported public import BatchJobs
@_exported public import BatchModels
@_exported public import BatchStore
@_exported public import SystemPackage
