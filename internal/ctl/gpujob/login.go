package gpujob

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"golang.org/x/term"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Login opens the connection to a cluster, with the person at the terminal answering what its hosts ask: a one-time password, say.
// Without a terminal each line of the input is an answer. Secret is "" for the cluster's own login.
func Login(ctx context.Context, s *session.Session, c *minik8s.SlurmCluster, secret string) error {
	lines := bufio.NewReader(s.In)
	said := minik8s.SlurmLoginAnswers{Secret: secret}
	for {
		step, err := loginStep(ctx, s, c, &said)
		if err != nil {
			return err
		}
		if step.Connected {
			s.Say("%s: the connection stands", brief.Ref(api.SlurmClusters, c.Name))
			return nil
		}
		if step.Instruction != "" {
			s.Note("%s", strings.TrimSpace(step.Instruction))
		}
		said = minik8s.SlurmLoginAnswers{ID: step.ID}
		for _, p := range step.Prompts {
			answer, err := answer(s, lines, step.Host, p)
			if err != nil {
				return exit.Failf(exit.Failed, "%s asks for %q: %v", step.Host, strings.TrimSpace(p.Text), err)
			}
			said.Answers = append(said.Answers, answer)
		}
	}
}

func loginStep(ctx context.Context, s *session.Session, c *minik8s.SlurmCluster, said *minik8s.SlurmLoginAnswers) (*minik8s.SlurmLoginStep, error) {
	body, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	at := "/apis/minik8s.io/v1/namespaces/" + url.PathEscape(c.Namespace) + "/slurmclusters/" + url.PathEscape(c.Name) + "/" + minik8s.SlurmLoginSubresource
	resp, err := s.API.Do(ctx, http.MethodPost, at, nil, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	step := &minik8s.SlurmLoginStep{}
	return step, json.NewDecoder(resp.Body).Decode(step)
}

// answer asks on the terminal, where what is not to be seen is not shown, or reads the next line of the input.
func answer(s *session.Session, lines *bufio.Reader, host string, p minik8s.SlurmLoginPrompt) (string, error) {
	if s.InTTY {
		fmt.Fprintf(s.Out, "(%s) %s", host, p.Text) //nolint:errcheck // a terminal
		if in, ok := s.In.(*os.File); ok && !p.Echo {
			text, err := term.ReadPassword(int(in.Fd()))
			fmt.Fprintln(s.Out) //nolint:errcheck // as above
			return string(text), err
		}
	}
	line, err := lines.ReadString('\n')
	if errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}
