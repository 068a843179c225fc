"""Large corpora, cut into shards that several processes parse or score."""
