package streaming

import "time"

// Tests do not wait for the next look.
func init() { lifeSign = 20 * time.Millisecond }
