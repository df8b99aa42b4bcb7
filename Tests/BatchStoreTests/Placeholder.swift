import Testing

@Suite struct BatchStorePlaceholderTests {}
