import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import Dispatch

/// Asks for lines on a terminal, and shows below a line what it means while it is typed.
///
/// Standard input is what is typed and standard error what is shown, so that standard output can go to a
/// file.
final class LineEditor {
  /// How long nothing must be typed before it is found out what the line means.
  private static let pause: Int32 = 150

  /// The terminal as it was, and is again whenever nothing is asked.
  private let usual: termios
  private var rest: [UInt8] = []
  /// Puts the terminal back before a signal ends the process.
  private let signals: [any DispatchSourceSignal]

  /// An editor, if there is a terminal to ask on and to show on.
  init?() {
    var usual = termios()
    guard isatty(STDERR_FILENO) == 1, tcgetattr(STDIN_FILENO, &usual) == 0,
      ProcessInfo.processInfo.environment["TERM"] != "dumb"
    else { return nil }
    self.usual = usual
    signals = [SIGTERM, SIGHUP].map { [usual] number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        var usual = usual
        tcsetattr(STDIN_FILENO, TCSANOW, &usual)
        _exit(ExitStatus.stopped.rawValue)
      }
      source.resume()
      return source
    }
  }

  deinit {
    for source in signals { source.cancel() }
  }

  /// A key that was pressed.
  private enum Key {
    case text(String)
    case enter, backspace, delete, left, right, home, end, clear, cancel, none
  }

  /// Asks for a line.
  ///
  /// - Parameters:
  ///   - prompt: What is asked.
  ///   - standard: What an empty line stands for; shown in brackets.
  ///   - note: What the line below shows from the start.
  ///   - meaning: Says what a line means, or what is wrong with it, for the line below; nil to leave the note there.
  /// - Returns: The line without the spaces around it.
  /// - Throws: `BatchError` of code `interrupted` after Ctrl-C, and Ctrl-D at an empty line.
  func line(
    _ prompt: String,
    standard: String = "",
    note: String = "",
    meaning: ((String) async -> String)? = nil
  ) async throws(BatchError) -> String {
    let prompt = prompt + (standard.isEmpty ? "" : " [\(standard)]") + ": "
    var text: [Character] = []
    var cursor = 0
    var hint = note
    var isHintDue = meaning != nil
    enterRawMode()
    defer { leaveRawMode() }
    while true {
      show(prompt, text, cursor, hint)
      if isHintDue, let meaning, !isInputWaiting(for: Self.pause) {
        hint = await meaning(String(text).trimmingSpaces)
        isHintDue = false
        continue
      }
      let before = text
      switch readKey() {
      case .text(let typed):
        text.insert(contentsOf: typed, at: cursor)
        cursor += typed.count
      case .backspace where cursor > 0:
        cursor -= 1
        text.remove(at: cursor)
      case .delete where cursor < text.count: text.remove(at: cursor)
      case .left: cursor = max(0, cursor - 1)
      case .right: cursor = min(text.count, cursor + 1)
      case .home: cursor = 0
      case .end: cursor = text.count
      case .clear: (text, cursor) = ([], 0)
      case .cancel:
        show(prompt, text, text.count, "")
        Terminal.say("")
        throw BatchError(.interrupted, "no job was written")
      case .enter:
        let line = String(text).trimmingSpaces
        show(prompt, Array(line.isEmpty ? standard : line), 0, "")
        Terminal.say("")
        return line.isEmpty ? standard : line
      case .backspace, .delete, .none: break
      }
      if meaning != nil, text != before {
        // What was found out is of another line now.
        hint = "…"
        isHintDue = true
      }
    }
  }

  private func enterRawMode() {
    var raw = usual
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG | IEXTEN)
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)
  }

  private func leaveRawMode() {
    var usual = usual
    tcsetattr(STDIN_FILENO, TCSADRAIN, &usual)
  }

  /// Draws the line, of which as much is shown as there is room for, and what it means below it.
  private func show(_ prompt: String, _ text: [Character], _ cursor: Int, _ hint: String) {
    let width = Terminal.columns - 1
    let prompt = prompt.shortened(to: max(width - 10, 1))
    let room = max(width - prompt.count, 1)
    let start = max(0, cursor - room)
    let shown = text[start..<min(text.count, start + room)].map(Self.visible).joined()
    var screen = "\r\u{1b}[J\(prompt)\(shown)"
    if !hint.isEmpty {
      let hint = "  \(hint.onOneLine)".shortened(to: width)
      screen += "\n\(Terminal.hasColor ? "\u{1b}[2m\(hint)\u{1b}[0m" : hint)\u{1b}[1A"
    }
    screen += "\r\u{1b}[\(prompt.count + cursor - start)C"
    Terminal.say(screen, terminator: "")
  }

  private static func visible(_ character: Character) -> String {
    String(character).onOneLine
  }

  private func isInputWaiting(for milliseconds: Int32) -> Bool {
    if !rest.isEmpty { return true }
    var wait = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    return poll(&wait, 1, milliseconds) != 0
  }

  /// The next byte; nil at the end of the input.
  private func readByte() -> UInt8? {
    if rest.isEmpty {
      var bytes = [UInt8](repeating: 0, count: 4096)
      var count = 0
      repeat { count = read(STDIN_FILENO, &bytes, bytes.count) } while count < 0 && errno == EINTR
      if count <= 0 { return nil }
      rest = Array(bytes[..<count])
    }
    return rest.removeFirst()
  }

  private func readKey() -> Key {
    guard let byte = readByte() else { return .cancel }
    switch byte {
    case 1: return .home
    case 3, 4: return .cancel
    case 5: return .end
    case 8, 127: return .backspace
    case 10, 13: return .enter
    case 21: return .clear
    case 27: return readSequence()
    case 9: return .text(" ")
    case ..<32: return .none
    default: return .text(readText(from: byte))
    }
  }

  /// The key of a sequence that begins with an escape; the escape key alone means nothing.
  private func readSequence() -> Key {
    guard isInputWaiting(for: 20), let kind = readByte(), kind == UInt8(ascii: "[") || kind == 79
    else { return .none }
    var last = readByte()
    var number = 0
    while let digit = last, (48...59).contains(digit) {
      number = number &* 10 &+ Int(digit) - 48
      last = readByte()
    }
    return switch last.map({ Character(Unicode.Scalar($0)) }) {
    case "C": .right
    case "D": .left
    case "H": .home
    case "F": .end
    case "~" where number == 3: .delete
    case "~" where number == 1 || number == 7: .home
    case "~" where number == 4 || number == 8: .end
    default: .none
    }
  }

  /// A character of UTF-8, or all of it that was pasted.
  private func readText(from first: UInt8) -> String {
    var bytes = [first]
    while bytes.count < 4096 {
      let continues = rest.first.map { $0 >= 32 && $0 != 127 } ?? false
      let isWhole = String(validating: bytes, as: UTF8.self) != nil
      if !continues, isWhole || !rest.isEmpty { break }
      guard let byte = readByte() else { break }
      bytes.append(byte)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
