import Testing

@Suite struct BatchIdentifiersPlaceholderTests {}
