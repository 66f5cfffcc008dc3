package requestinfo

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

// escaped is the rest of a path, as the client sent it; empty, or with a slash first.
type escaped string

// belowVersion returns the path below a group and version.
func belowVersion(c echo.Context) escaped {
	rest := c.Request().URL.EscapedPath()
	for range strings.Count(strings.TrimSuffix(c.Path(), "/*"), "/") {
		_, rest = cutSegment(rest)
	}
	for strings.HasPrefix(rest, "//") {
		rest = rest[1:]
	}
	return escaped(rest)
}

// cutSegment removes the first segment of a path that begins with a slash. The rest begins with one too, unless it is
// empty.
func cutSegment(path string) (segment, rest string) {
	if path == "" {
		return "", ""
	}
	path = path[1:]
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// next removes and returns the next segment, unescaped; "" at the end. An empty segment is NotFound.
func (p *escaped) next() (string, error) {
	if strings.Trim(string(*p), "/") == "" {
		return "", nil
	}
	segment, rest := cutSegment(string(*p))
	*p = escaped(rest)
	plain, err := url.PathUnescape(segment)
	if err != nil || plain == "" {
		return "", echo.ErrNotFound
	}
	return plain, nil
}
