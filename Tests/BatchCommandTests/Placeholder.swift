import Testing

@Suite struct BatchCommandPlaceholderTests {}
