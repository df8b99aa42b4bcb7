/// The most similar candidate for a misspelled name, if one is similar enough.
///
/// Case is ignored. Up to a third of the letters may be wrong, missing, surplus or swapped with a
/// neighbour; among equally similar candidates, the alphabetically first one wins. Takes
/// O(candidates × length²) time, so names of more than 100 characters have no nearest name.
package func nearestName(
  to name: String,
  among candidates: some Sequence<String>
) -> String? {
  let sought = Array(name.lowercased().unicodeScalars)
  guard sought.count <= 100 else { return nil }
  var nearest: (distance: Int, name: String)?
  for candidate in candidates where candidate != name {
    let letters = Array(candidate.lowercased().unicodeScalars)
    let bound = max(1, max(sought.count, letters.count) / 3)
    guard letters.count <= 100, abs(letters.count - sought.count) <= bound else { continue }
    let distance = editDistance(sought, letters)
    guard distance <= bound, distance < max(sought.count, letters.count) else { continue }
    if let nearest, (nearest.distance, nearest.name) <= (distance, candidate) { continue }
    nearest = (distance, candidate)
  }
  return nearest?.name
}

/// A remedy for an unknown name: `did you mean "where"?`, or the valid names.
///
/// - Parameters:
///   - name: The unknown name.
///   - candidates: The valid names, in the order in which to list them.
///   - kind: A plural for the names, as in "the columns are …".
/// - Returns: A clause without a full stop.
package func remedyForUnknownName(
  _ name: String,
  among candidates: [String],
  kind: String
) -> String {
  if let nearest = nearestName(to: name, among: candidates) {
    return "did you mean \(nearest.quotedForMessage)?"
  }
  return remedyListing(candidates, kind: kind)
}

package func remedyListing(_ candidates: [String], kind: String) -> String {
  if candidates.isEmpty { return "there are no \(kind)" }
  let listed = candidates.prefix(12).joined(separator: ", ")
  return "the \(kind) are \(listed)\(candidates.count > 12 ? ", …" : "")"
}

/// The number of letters to insert, remove, replace or swap with a neighbour.
private func editDistance(_ first: [Unicode.Scalar], _ second: [Unicode.Scalar]) -> Int {
  var beforeLast: [Int] = []
  var last = Array(0...second.count)
  for row in first.indices {
    var current = [row + 1]
    for column in second.indices {
      var cost = min(
        last[column] + (first[row] == second[column] ? 0 : 1),
        last[column + 1] + 1,
        current[column] + 1
      )
      if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
        cost = min(cost, beforeLast[column - 1] + 1)
      }
      current.append(cost)
    }
    (beforeLast, last) = (last, current)
  }
  return last[second.count]
}
