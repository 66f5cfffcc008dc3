package streaming

import "time"

// Tests do not wait for the next look.
func init() { checkInterval = 20 * time.Millisecond }
