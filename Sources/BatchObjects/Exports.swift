// Whoever works with objects also runs them, and jobs.
@_exported public import BatchPipeline
