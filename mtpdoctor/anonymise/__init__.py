"""Taking private names out of texts that are passed on; what each name became is the same in every text."""
