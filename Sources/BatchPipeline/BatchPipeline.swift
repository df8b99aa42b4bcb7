public import BatchStore
