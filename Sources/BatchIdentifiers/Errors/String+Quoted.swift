extension String {
  /// The text in double quotes, on one line and of limited length, for error messages.
  ///
  /// Quoted text comes from files and command lines: its line breaks and escape sequences must
  /// neither break the one-line form nor reach a terminal.
  package var quotedForMessage: String {
    let limit = 80
    var text = "\""
    for (count, scalar) in unicodeScalars.enumerated() {
      if count == limit { return text + "…\"" }
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      default:
        if scalar.isUnprintable {
          text += "\\u{\(String(scalar.value, radix: 16))}"
        } else {
          text.unicodeScalars.append(scalar)
        }
      }
    }
    return text + "\""
  }
}

extension String {
  /// The text on one line; characters that would move the cursor or be invisible are escaped.
  package var onOneLine: String {
    var text = ""
    for scalar in unicodeScalars {
      switch scalar {
      case "\n", "\r", "\t": text += " "
      case _ where scalar.isUnprintable: text += "\\u{\(String(scalar.value, radix: 16))}"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }
}

extension Unicode.Scalar {
  /// Whether the scalar would move the cursor of a terminal or be invisible.
  package var isUnprintable: Bool {
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: true
    default: false
    }
  }
}

extension String {
  /// The text with at most `count` characters; an ellipsis stands for the rest.
  package func shortened(to count: Int) -> String {
    self.count <= count ? self : prefix(max(count - 1, 0)) + "…"
  }
}
