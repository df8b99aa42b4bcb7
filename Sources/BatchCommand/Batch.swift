import ArgumentParser
@main struct Batch: ParsableCommand {}
