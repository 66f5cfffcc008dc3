package hosts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// expectPath is "expect path MASTER PATH has TEXT": what a master's API answers at a path, to its root, has the text.
func (p *play) expectPath(ctx context.Context, args []string) error {
	if len(args) != 4 || args[2] != "has" {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	c, err := h.API()
	if err != nil {
		return err
	}
	resp, err := c.Do(ctx, http.MethodGet, args[1], nil, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	body, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(body), args[3]) {
		err = fmt.Errorf("the answer is %s", body)
	}
	return err
}
