// Package apiproxy serves the API on a port of this machine, with the user's own credentials, for programs that have none: a
// browser, curl, a dashboard.
//
// It promises: whoever reaches the port may do what the user may, but for what the filters keep out. By default these are
// kubectl's (pkg/proxy): only requests by the names of this machine, so that a web page elsewhere cannot use a browser here,
// and no commands in containers; here also not by a node's proxy, which leads to the same commands.
//
// ctl's proxy calls it. It keeps no state: what is under way ends with the command.
package apiproxy
