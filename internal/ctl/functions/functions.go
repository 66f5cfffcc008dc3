package functions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/session"
)

// mainFile is a folder's file that has the function.
const mainFile = "main.py"

// Read reads a function's program from a file, or from a folder with a main.py and whatever that imports, below it. Nothing of a folder
// is left out in silence, but hidden folders and compiled files.
func Read(path string) (source string, files []minik8s.FunctionFile, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", nil, err
	}
	if !info.IsDir() {
		data, err := os.ReadFile(path)
		return string(data), nil, err
	}
	found := false
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(path, p)
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			if d.Name() == "__pycache__" || strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if info, err := os.Stat(p); err != nil { // a link to a file is that file
			return err
		} else if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: expected files and folders: what a link to a folder leads to, and what is no file, does not come along; copy it there or remove it", p)
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		switch {
		case name == mainFile:
			found, source = true, string(data)
		case utf8.Valid(data):
			files = append(files, minik8s.FunctionFile{Path: filepath.ToSlash(name), Content: string(data)})
		default:
			files = append(files, minik8s.FunctionFile{Path: filepath.ToSlash(name), Data: data})
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: expected a file %s in it, which defines main(params) or run(arg)", path, mainFile)
	}
	return source, files, err
}

// Add makes a function. change sets what is not in its files.
func Add(ctx context.Context, s *session.Session, namespace, name, path string, change func(*minik8s.FunctionSpec)) error {
	source, files, err := Read(path)
	if err != nil {
		return err
	}
	f := &minik8s.Function{TypeMeta: metav1.TypeMeta{APIVersion: api.Functions.APIVersion(), Kind: api.Functions.Kind}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: minik8s.FunctionSpec{Source: source, Files: files}}
	change(&f.Spec)
	if _, err := s.API.Create(ctx, f, client.WriteOptions{FieldManager: session.Manager}); err != nil {
		return err
	}
	s.Say("function %q added", name)
	return nil
}

// Update gives a function other files. What else it says stays, but for what change sets.
func Update(ctx context.Context, s *session.Session, namespace, name, path string, change func(*minik8s.FunctionSpec)) error {
	source, files, err := Read(path)
	if err != nil {
		return err
	}
	for {
		old, err := client.Get[*minik8s.Function](ctx, s.API, client.Key{Kind: api.Functions, Namespace: namespace, Name: name})
		if err != nil {
			return err
		}
		f := old.DeepCopy()
		f.Spec.Source, f.Spec.Files, f.Spec.Image, f.Spec.Port = source, files, "", 0
		change(&f.Spec)
		_, err = s.API.Update(ctx, f, client.WriteOptions{FieldManager: session.Manager})
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil {
			s.Say("function %q updated", name)
		}
		return err
	}
}

// Fault is a call without a result: the function's own text, or why there is none.
type Fault struct{ Text string }

func (f *Fault) Error() string { return f.Text }

// Call calls a function and returns its result or, if it is not waited for, the call's id. The error is a *Fault if the call was made and has no
// result.
func Call(ctx context.Context, s *session.Session, namespace, name string, body []byte, query url.Values) (text string, waiting bool, err error) {
	path := fmt.Sprintf("/apis/minik8s.io/v1/namespaces/%s/functions/%s/call", url.PathEscape(namespace), url.PathEscape(name))
	return answer(s.API.Do(ctx, http.MethodPost, path, query, "application/json", bytes.NewReader(body)))
}

// Result is the result of a call that was not waited for; waiting: there is none yet. The errors are those of Call.
func Result(ctx context.Context, s *session.Session, namespace, id string) (text string, waiting bool, err error) {
	path := fmt.Sprintf("/apis/minik8s.io/v1/namespaces/%s/functioncalls/%s/result", url.PathEscape(namespace), url.PathEscape(id))
	return answer(s.API.Do(ctx, http.MethodGet, path, url.Values{"text": {""}}, "", nil))
}

func answer(resp *http.Response, err error) (string, bool, error) {
	if err != nil {
		return "", false, faultOf(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(resp.Body)
	return strings.TrimSuffix(string(data), "\n"), resp.StatusCode == http.StatusAccepted, err
}

// faultOf is the text that an answer has for people, instead of an error of the API.
func faultOf(err error) error {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	for _, c := range status.Status().Details.Causes {
		if c.Type == metav1.CauseTypeUnexpectedServerResponse {
			return &Fault{c.Message}
		}
	}
	return err
}
