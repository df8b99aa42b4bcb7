import Testing

@Suite struct BatchPipelinePlaceholderTests {}
