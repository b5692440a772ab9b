package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// caseFile is one tests/api/*.case: a script of requests with the answers recorded so far. The form
// is specified in docs/recorded-cases.md, section 2.
type caseFile struct {
	path   string
	head   []string // lines before the first step, kept as they are
	server string
	steps  []*step
}

// step is one request. question keeps its lines as written, since recording rewrites answers only.
type step struct {
	name     string
	question []string
	answer   []string // lines after ---; nil when never recorded
	line     int

	method, target string
	headers        [][2]string
	body           string
	hasBody        bool

	as           string
	saves        [][2]string // name, path
	extraHeaders []string
	items        []string
	keepManaged  bool
	hash         bool
	protobuf     bool
	statusOnly   bool
	open         string
	until        string
	sort         []string
	fact         string
}

func (c *caseFile) namespace() string {
	return strings.TrimSuffix(filepath.Base(c.path), ".case")
}

func readCase(path string) (*caseFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &caseFile{path: path, server: "default"}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	i := 0
	for ; i < len(lines) && !strings.HasPrefix(lines[i], "### "); i++ {
		c.head = append(c.head, lines[i])
		if name, ok := strings.CutPrefix(lines[i], "@server "); ok {
			c.server = strings.TrimSpace(name)
		}
	}
	names := map[string]bool{}
	for i < len(lines) {
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "### ") {
			end++
		}
		s, err := parseStep(lines[i:end])
		if err == nil && names[s.name] {
			err = fmt.Errorf("a second step named %q", s.name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		names[s.name] = true
		s.line = i + 1
		c.steps = append(c.steps, s)
		i = end
	}
	return c, nil
}

func parseStep(lines []string) (*step, error) {
	s := &step{name: strings.TrimPrefix(lines[0], "### "), as: "admin"}
	cut := slices.Index(lines, "---")
	if cut < 0 {
		cut = len(lines)
	} else {
		s.answer = trimBlank(lines[cut+1:])
	}
	s.question = trimBlank(lines[:cut])
	i := 1
	for i < len(s.question) && strings.HasPrefix(s.question[i], "#") {
		i++
	}
	if i == len(s.question) {
		return nil, fmt.Errorf("step %q has no request line", s.name)
	}
	var ok bool
	if s.method, s.target, ok = strings.Cut(s.question[i], " "); !ok {
		return nil, fmt.Errorf("step %q: not a request line: %s", s.name, s.question[i])
	}
	for i++; i < len(s.question) && s.question[i] != ""; i++ {
		if err := s.parseLine(s.question[i]); err != nil {
			return nil, fmt.Errorf("step %q: %w", s.name, err)
		}
	}
	if i < len(s.question) {
		s.hasBody = true
		s.body = strings.Join(s.question[i+1:], "\n")
	}
	return s, nil
}

func (s *step) parseLine(line string) error {
	if strings.HasPrefix(line, "#") {
		return nil
	}
	if !strings.HasPrefix(line, "@") {
		name, text, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("not a header: %s", line)
		}
		s.headers = append(s.headers, [2]string{name, strings.TrimSpace(text)})
		return nil
	}
	word, rest, _ := strings.Cut(line[1:], " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "as":
		s.as = rest
	case "save":
		name, path, ok := strings.Cut(rest, " ")
		if !ok {
			return fmt.Errorf("@save wants a name and a path: %s", line)
		}
		s.saves = append(s.saves, [2]string{name, strings.TrimSpace(path)})
	case "headers":
		s.extraHeaders = words(rest)
	case "items":
		s.items = words(rest)
	case "keep":
		s.keepManaged = rest == "managedFields"
	case "hash":
		s.hash = true
	case "protobuf":
		s.protobuf = true
	case "status":
		s.statusOnly = true
	case "open":
		s.open = rest
	case "fact":
		s.fact = rest
	case "sort":
		s.sort = words(rest)
	case "until":
		s.until = rest
	default:
		return fmt.Errorf("unknown directive @%s", word)
	}
	return nil
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

func trimBlank(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return slices.Clone(lines)
}

// write puts the file back with the answers that the steps now hold.
func (c *caseFile) write() error {
	var b strings.Builder
	for _, line := range trimBlank(c.head) {
		b.WriteString(line + "\n")
	}
	for _, s := range c.steps {
		b.WriteString("\n" + strings.Join(s.question, "\n") + "\n---\n")
		b.WriteString(strings.Join(s.answer, "\n") + "\n")
	}
	return os.WriteFile(c.path, []byte(strings.TrimLeft(b.String(), "\n")), 0o644)
}

// variables are what {{NAME}} stands for in one case.
type variables map[string]string

const maxRepeat = 16 << 20

var repeatPattern = regexp.MustCompile(`\{\{([0-9]+)\*([A-Za-z0-9])\}\}`)

var variablePattern = regexp.MustCompile(`\{\{([A-Za-z0-9_]+)(\|q)?\}\}`)

func (v variables) expand(s string) (string, error) {
	var missing error
	s = repeatPattern.ReplaceAllStringFunc(s, func(m string) string {
		sub := repeatPattern.FindStringSubmatch(m)
		n, err := strconv.Atoi(sub[1])
		if err != nil || n > maxRepeat {
			missing = fmt.Errorf("cannot repeat: %s", m)
			return ""
		}
		return strings.Repeat(sub[2], n)
	})
	out := variablePattern.ReplaceAllStringFunc(s, func(m string) string {
		sub := variablePattern.FindStringSubmatch(m)
		text, ok := v[sub[1]]
		if !ok {
			missing = fmt.Errorf("no variable %q", sub[1])
		}
		if sub[2] != "" {
			return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
		}
		return text
	})
	return out, missing
}
