package api

// GroupMasters is the group of users who may do everything, with Kubernetes' name.
const GroupMasters = "system:masters"
