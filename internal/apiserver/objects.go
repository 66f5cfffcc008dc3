package apiserver

import (
	"github.com/labstack/echo/v4"

	"minik8s/internal/apiserver/authentication"
	"minik8s/internal/apiserver/flowcontrol"
	"minik8s/internal/apiserver/objectmetrics"
	"minik8s/internal/apiserver/proxy"
	"minik8s/internal/exposition"
)

// objectMetrics serves /metrics/objects. It costs as much as a list of all these objects. Every master has the same ones,
// so one of them is to be asked.
func (s *Server) objectMetrics(c echo.Context) error {
	objects := int64(0)
	for _, k := range objectmetrics.Kinds() {
		objects += int64(s.reg.Count(k))
	}
	leave, err := s.limiter.Enter(c.Request().Context(), authentication.User(c), flowcontrol.ListUnits(objects), false)
	if err != nil {
		return err
	}
	defer leave()
	c.Response().Header().Set(echo.HeaderContentType, exposition.ContentType)
	return objectmetrics.Write(proxy.InPieces(c.Response(), s.cfg.WriteTimeout), s.reg.AllCached)
}
