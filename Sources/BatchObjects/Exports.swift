// Programs that work with objects also run them, and jobs.
@_exported public import BatchPipeline
