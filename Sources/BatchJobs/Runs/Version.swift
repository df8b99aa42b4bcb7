/// The version of the program and of the library.
public let batchVersion = "0.2.0"
