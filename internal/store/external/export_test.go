package external

import "time"

func init() { voidAfter = time.Second }
