/// The first lines of a source that uses objects.
let objectImports = "import BatchIdentifiers\nimport BatchObjects\nimport BatchSQLite\n"
