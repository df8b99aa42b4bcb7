#if PostgreSQL
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct ParseTreeTests {
  @Test func `a parse tree lists functions, operators, types and tables`() {
    let tree = ParseTree(
      """
      {QUERY :commandType 1 :rtable ({RTE :eref {ALIAS :aliasname a\\ :funcid\\ 1 :colnames ("x\\ \\{EVIL" "y")} \
      :relid 16385 :relkind r :selectedCols (b 7 9)} {RTE :rtekind 1 :selectedCols (b)}) :jointree {FROMEXPR :quals {OPEXPR :opno 96 :opfuncid 65 :opresulttype 16 \
      :args ({FUNCEXPR :funcid 870 :funcresulttype 25} {CONST :consttype 23 :constvalue 4 [ 1 0 0 0 0 0 0 0 ]}\
      {ROWCOMPARE :rctype 1 :opnos (o 97 98) :largs <>}{AGGREF :aggfnoid 2803 :aggtype 20})}} \
      :cteList ({COMMONTABLEEXPR :ctequery {QUERY :commandType 4}})}
      """
    )
    #expect(tree.functions == [65, 870, 2803])
    #expect(tree.operators.isSuperset(of: [96, 97, 98]))
    #expect(tree.types.isSuperset(of: [16, 25, 23, 20]))
    #expect(tree.relations == [16385])
    #expect(tree.reads == [16385: [0, 2]])
    #expect(tree.commands == [1, 4])
    #expect(
      tree.nodes == [
        "QUERY", "RTE", "ALIAS", "FROMEXPR", "OPEXPR", "FUNCEXPR", "CONST", "ROWCOMPARE", "AGGREF",
        "COMMONTABLEEXPR",
      ]
    )
  }

  @Test(arguments: ["", "{", "}", "\\", ":", "{:", "{A :", "(((", ":funcid", ":funcid \\"])
  func `no malformed parse tree traps`(text: String) {
    #expect(ParseTree(text).functions.isEmpty)
  }
}
#endif
