"""Getting a document from a Site, politely: an `Answer` value comes back, never an exception for what a Site did."""
