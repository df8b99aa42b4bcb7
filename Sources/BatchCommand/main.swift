import BatchTool

await BatchTool().run()
