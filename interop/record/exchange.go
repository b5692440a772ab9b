package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	exchangeTimeout = 40 * time.Second
	streamTimeout   = 20 * time.Second
)

// alwaysRecorded are the answer headers that every step records.
var alwaysRecorded = []string{
	"Content-Type", "Warning", "Allow", "Location", "Retry-After", "WWW-Authenticate",
}

// session is one case being asked: its variables, placeholders and open streams.
type session struct {
	cluster *cluster
	vars    variables
	norm    normaliser
	streams map[string]*stream
	facts   string // folder of the documents that @fact names
}

type stream struct {
	body   io.ReadCloser
	cancel context.CancelFunc
	events chan streamEvent
}

type streamEvent struct {
	data []byte
	err  error
}

// ask runs all steps of a case and puts the answers into them.
func ask(c *cluster, f *caseFile) error {
	s := &session{
		cluster: c,
		vars:    variables{"ns": f.namespace(), "server": c.host},
		norm:    normaliser{servers: c.names()},
		streams: map[string]*stream{},
		facts:   filepath.Join(filepath.Dir(f.path), "facts"),
	}
	defer s.closeAll()
	if err := s.prepare(f.namespace()); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	for _, st := range f.steps {
		if err := s.step(st); err != nil {
			return fmt.Errorf("%s:%d: step %q: %w", f.path, st.line, st.name, err)
		}
	}
	return nil
}

// prepare makes the namespace of a case and its default ServiceAccount, which no controller makes here.
func (s *session) prepare(ns string) error {
	for _, made := range [][2]string{
		{"/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + ns + `"}}`},
		{"/api/v1/namespaces/" + ns + "/serviceaccounts",
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`},
	} {
		client, err := s.cluster.client("admin")
		if err != nil {
			return err
		}
		resp, err := client.Post("https://"+s.cluster.host+made[0], "application/json",
			strings.NewReader(made[1]))
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusCreated {
			return fmt.Errorf("preparing %s: %s", made[0], resp.Status)
		}
	}
	return nil
}

func (s *session) step(st *step) error {
	switch st.method {
	case "READ":
		return s.read(st)
	case "CLOSE":
		s.close(st.target)
		st.answer = []string{"200"}
		return nil
	}
	deadline := time.Now().Add(streamTimeout)
	for {
		status, err := s.exchange(st)
		if err != nil || st.until == "" || status == st.until {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("@until %s: still %s:\n%s", st.until, status, strings.Join(st.answer, "\n"))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// exchange sends the step's request once, records the answer and returns its status.
func (s *session) exchange(st *step) (string, error) {
	req, cancel, err := s.request(st)
	if err != nil {
		return "", err
	}
	client, err := s.cluster.client(st.as)
	if err != nil {
		cancel()
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		cancel()
		return "", err
	}
	head := s.answerHead(resp, st)
	if st.open != "" && resp.StatusCode == http.StatusOK {
		s.streams[st.open] = newStream(resp, cancel)
		st.answer = head
		return head[0], nil
	}
	defer cancel()
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	st.answer = head
	if st.statusOnly || st.until != "" && head[0] != st.until {
		return head[0], nil
	}
	path := pathOf(req.URL.Path)
	return head[0], s.record(st, path, head, resp.Header.Get("Content-Type"), data)
}

func (s *session) request(st *step) (*http.Request, context.CancelFunc, error) {
	target, err := s.vars.expand(st.target)
	if err != nil {
		return nil, nil, err
	}
	text, err := s.vars.expand(st.body)
	if err != nil {
		return nil, nil, err
	}
	headers := http.Header{
		"Accept": {"application/json"}, "User-Agent": {"recorded-case/1"},
		"Accept-Encoding": {"identity"},
	}
	body := []byte(text)
	if st.hasBody {
		headers.Set("Content-Type", "application/json")
	}
	if st.protobuf {
		headers.Set("Content-Type", "application/vnd.kubernetes.protobuf")
		if body, err = encodeProtobuf(body); err != nil {
			return nil, nil, err
		}
	}
	fresh := map[string]bool{}
	for _, h := range st.headers {
		value, err := s.vars.expand(h[1])
		if err != nil {
			return nil, nil, err
		}
		name := http.CanonicalHeaderKey(h[0])
		if !fresh[name] {
			headers.Del(name)
			fresh[name] = true
		}
		if value != "" {
			headers.Add(name, value)
		}
	}
	timeout := exchangeTimeout
	if st.open != "" {
		timeout = time.Hour
	}
	ctx, cancel := withTimeout(timeout)
	var reader io.Reader
	if st.hasBody {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, st.method, "https://"+s.cluster.host+target, reader)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	req.Header = headers
	return req, cancel, nil
}

func (s *session) answerHead(resp *http.Response, st *step) []string {
	head := []string{strconv.Itoa(resp.StatusCode)}
	for _, name := range append(append([]string{}, alwaysRecorded...), st.extraHeaders...) {
		for _, v := range resp.Header.Values(name) {
			switch strings.ToLower(name) {
			case "etag":
				v = `"<etag>"`
			case "expires", "last-modified", "date":
				v = "<time>"
			}
			head = append(head, name+": "+s.norm.text(v))
		}
	}
	return head
}

// record normalises a body and puts the whole answer into the step.
func (s *session) record(st *step, path string, head []string, contentType string, data []byte) error {
	media, params, _ := mime.ParseMediaType(contentType)
	var body value
	var err error
	switch {
	case len(data) == 0:
		st.answer = head
		return nil
	case media == "application/json" && params["stream"] == "watch":
		body, err = parseEvents(data)
	case media == "application/json":
		body, err = parseJSON(data)
	case media == "application/vnd.kubernetes.protobuf" && params["stream"] == "":
		var decoded []byte
		if decoded, err = decodeProtobuf(data); err == nil {
			body, err = parseJSON(decoded)
		}
	default:
		text := s.norm.text(strings.TrimRight(string(data), "\n"))
		st.answer = head
		if text != "" {
			st.answer = append(append(head, ""), strings.Split(text, "\n")...)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("body of %s: %w", contentType, err)
	}
	return s.recordJSON(st, path, head, body)
}

func (s *session) recordJSON(st *step, path string, head []string, body value) error {
	for _, save := range st.saves {
		v, err := at(body, save[1])
		if err != nil {
			return fmt.Errorf("@save %s: %w\n%s", save[0], err, pretty(body))
		}
		s.vars[save[0]] = plain(v)
	}
	body = s.norm.normalise(body, options{
		path: path, items: st.items, keepManagedFields: st.keepManaged,
	})
	for _, path := range st.sort {
		v, err := at(body, path)
		if err != nil {
			return fmt.Errorf("@sort %s: %w", path, err)
		}
		sortByText(v)
	}
	if st.fact != "" {
		st.answer = head
		return s.sameAsFact(st.fact, body)
	}
	if st.hash {
		sum := sha256.Sum256([]byte(compact(body, true)))
		body = &object{[]member{{"sha256", hex.EncodeToString(sum[:])}}}
	}
	st.answer = append(append(head, ""), strings.Split(pretty(body), "\n")...)
	return nil
}

// sameAsFact compares a body with a document of tests/api/facts, which stands there once for all.
func (s *session) sameAsFact(file string, body value) error {
	data, err := os.ReadFile(filepath.Join(s.facts, filepath.FromSlash(file)))
	if err != nil {
		return err
	}
	fact, err := parseJSON(data)
	if err != nil {
		return err
	}
	if compact(fact, true) != compact(body, true) {
		return fmt.Errorf("differs from the fact %s: run `record facts` first", file)
	}
	return nil
}

// plain is a value as the text of a variable.
func plain(v value) string {
	switch t := v.(type) {
	case string:
		return t
	case json.Number:
		return t.String()
	}
	return compact(v, false)
}

func parseEvents(data []byte) (value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	list := &array{}
	for {
		v, err := readValue(d)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list.items = append(list.items, v)
	}
}

// newStream reads a watch's events in the background, so that a step can wait with a limit.
func newStream(resp *http.Response, cancel context.CancelFunc) *stream {
	st := &stream{body: resp.Body, cancel: cancel, events: make(chan streamEvent, 1024)}
	next := nextLine
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/vnd.kubernetes.protobuf") {
		next = nextFrame
	}
	go func() {
		defer close(st.events)
		r := bufio.NewReaderSize(resp.Body, 1<<20)
		for {
			data, err := next(r)
			if errors.Is(err, errBadFrame) {
				st.events <- streamEvent{err: err}
			}
			if err != nil {
				return
			}
			st.events <- streamEvent{data: data}
		}
	}()
	return st
}

var errBadFrame = errors.New("bad watch frame")

func nextLine(r *bufio.Reader) ([]byte, error) {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil, err // A line that does not end was cut off by the end of the stream.
		}
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
}

// nextFrame reads a length (four bytes, big endian) and that much of a protobuf watch event.
func nextFrame(r *bufio.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	event, err := decodeWatchEvent(frame)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadFrame, err)
	}
	return event, nil
}

func (s *session) read(st *step) error {
	name, count, _ := strings.Cut(st.target, " ")
	open, ok := s.streams[name]
	if !ok {
		return fmt.Errorf("no open stream %q", name)
	}
	limit := -1
	if count != "end" {
		n, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		limit = n
	}
	list := &array{}
	timeout := time.After(streamTimeout)
	for limit < 0 || len(list.items) < limit {
		select {
		case e, more := <-open.events:
			if !more {
				if limit < 0 {
					return s.recordJSON(st, "", []string{"200"}, list)
				}
				return fmt.Errorf("stream %s ended after %d events", name, len(list.items))
			}
			if e.err != nil {
				return e.err
			}
			v, err := parseJSON(e.data)
			if err != nil {
				return err
			}
			if !periodicBookmark(v) {
				list.items = append(list.items, v)
			}
		case <-timeout:
			return fmt.Errorf("stream %s: only %d events came:\n%s", name, len(list.items), pretty(list))
		}
	}
	return s.recordJSON(st, "", []string{"200"}, list)
}

// periodicBookmark tells the bookmarks that come by the clock from the one that ends the initial events.
func periodicBookmark(event value) bool {
	o, ok := event.(*object)
	return ok && o.getString("type") == "BOOKMARK" &&
		!strings.Contains(compact(o, false), "k8s.io/initial-events-end")
}

func (s *session) close(name string) {
	if open, ok := s.streams[name]; ok {
		open.cancel()
		open.body.Close()
		delete(s.streams, name)
	}
}

func (s *session) closeAll() {
	for name := range s.streams {
		s.close(name)
	}
}
