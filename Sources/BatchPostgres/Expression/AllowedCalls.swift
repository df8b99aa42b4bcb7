#if PostgreSQL
/// What an expression may contain.
///
/// - Functions of `pg_catalog` that the server declares `IMMUTABLE` or `STABLE`, and the operators
///   and casts that use them. Functions that write, read files, sleep, lock, send or change
///   settings are `VOLATILE` there.
/// - Of the volatile functions, those that only produce values: ``volatileFunctions``.
/// - No function whose name begins with `pg_`, except ``harmlessNames``, and none of
///   ``hidingNames``: these inspect the server, or tables named in a text.
/// - Functions of the extensions in ``extensions`` that are not volatile, so that `citext`,
///   `hstore` and their operators work. Not those of other extensions: `crosstab` of `tablefunc`
///   and `xpath_table` of `xml2` are `STABLE` and run SQL given as text. No other functions, since
///   their effects are unknown.
/// - Types of `pg_catalog` and of extensions, enumerations, and the column types of tables that the
///   expression reads. Other types are excluded because the check of a domain can call anything.
/// - Tables, also partitioned ones, and views, also materialized ones, which read what their owners
///   allow. No foreign tables, since they belong to other servers, and no system tables.
/// - No `FOR UPDATE`, `TABLESAMPLE`, `CURRENT OF`, `XMLTABLE`, and no kind of node that is not in
///   ``nodes``.
enum AllowedCalls {
  static let volatileFunctions: Set<String> = [
    "random", "random_normal", "gen_random_uuid", "uuidv4", "uuidv7", "clock_timestamp",
    "timeofday",
  ]

  /// Extensions whose functions only compute, unless they are volatile.
  static let extensions: Set<String> = [
    "btree_gin", "btree_gist", "citext", "cube", "earthdistance", "fuzzystrmatch", "hstore",
    "intarray", "isn", "ltree", "pg_trgm", "pgcrypto", "seg", "unaccent", "uuid-ossp",
  ]

  /// Functions whose names begin with `pg_` but that only inspect their arguments.
  static let harmlessNames: Set<String> = [
    "pg_typeof", "pg_column_size", "pg_size_pretty", "pg_size_bytes",
  ]

  /// Functions that are `STABLE` or `IMMUTABLE` but read more than their arguments.
  static let hidingNames: Set<String> = [
    "table_to_xml", "table_to_xmlschema", "table_to_xml_and_xmlschema", "schema_to_xml",
    "schema_to_xmlschema", "schema_to_xml_and_xmlschema", "database_to_xml",
    "database_to_xmlschema",
    "database_to_xml_and_xmlschema", "query_to_xml", "query_to_xmlschema",
    "query_to_xml_and_xmlschema", "cursor_to_xml", "cursor_to_xmlschema", "txid_current", "ts_stat",
    "domain_in", "domain_recv", "record_in", "array_in", "fmgr_c_validator", "fmgr_sql_validator",
    "fmgr_internal_validator", "plpgsql_validator", "current_setting",
  ]

  /// Whether a function only computes; `extensionName` is the extension that it belongs to, in any
  /// schema.
  static func admits(
    function name: String,
    of extensionName: String?,
    isBuiltIn: Bool,
    isVolatile: Bool
  ) -> Bool {
    if let extensionName { return extensions.contains(extensionName) && !isVolatile }
    guard isBuiltIn else { return false }
    if isVolatile { return volatileFunctions.contains(name) }
    if hidingNames.contains(name) { return false }
    return !name.hasPrefix("pg_") || harmlessNames.contains(name)
  }

  /// The node kinds of a parse tree that are known to be harmless, by their names in versions 12 to
  /// 18.
  static let nodes: Set<String> = [
    // Queries.
    "QUERY", "FROMEXPR", "RANGETBLREF", "RTE", "RANGETBLENTRY", "RTEPERMISSIONINFO", "ALIAS",
    "TARGETENTRY", "SORTGROUPCLAUSE", "GROUPINGSET", "WINDOWCLAUSE", "COMMONTABLEEXPR",
    "SETOPERATIONSTMT", "JOINEXPR", "RANGETBLFUNCTION",
    // Values and calls.
    "VAR", "CONST", "PARAM", "AGGREF", "GROUPINGFUNC", "WINDOWFUNC", "SUBSCRIPTINGREF", "FUNCEXPR",
    "NAMEDARGEXPR", "OPEXPR", "DISTINCTEXPR", "NULLIFEXPR", "SCALARARRAYOPEXPR", "BOOLEXPR",
    "SUBLINK",
    "FIELDSELECT", "RELABELTYPE", "COERCEVIAIO", "ARRAYCOERCEEXPR", "CONVERTROWTYPEEXPR", "COLLATE",
    "COLLATEEXPR", "CASE", "CASEEXPR", "WHEN", "CASEWHEN", "CASETESTEXPR", "ARRAY", "ARRAYEXPR",
    "ROW",
    "ROWEXPR", "ROWCOMPARE", "ROWCOMPAREEXPR", "COALESCE", "COALESCEEXPR", "MINMAX", "MINMAXEXPR",
    "SQLVALUEFUNCTION", "NULLTEST", "BOOLEANTEST", "COERCETODOMAIN", "COERCETODOMAINVALUE",
    "JSONVALUEEXPR", "JSONFORMAT", "JSONRETURNING", "JSONCONSTRUCTOREXPR", "JSONISPREDICATE",
  ]
}
#endif
