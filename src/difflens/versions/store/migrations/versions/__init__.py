"""One file a revision, named by it; a revision that was released is never changed."""
