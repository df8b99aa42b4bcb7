// A service needs one import: what a run is said with comes from all of these, paths included.
@_exported public import BatchEngine
@_exported public import BatchIdentifiers
@_exported public import BatchModels
@_exported public import BatchStore
@_exported public import SystemPackage
