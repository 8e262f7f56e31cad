"""Whether `lineage` names the kinship of pairs right, over real weights and small trained nets."""
