package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// markers reads the `+name=value` comments of the packages' sources.
type markers struct {
	packages map[string]*sources
}

type sources struct {
	types  map[string][]string            // type name -> markers
	fields map[string]map[string][]string // type name -> Go field name -> markers
	consts map[string][]string            // type name -> values of its string constants
}

func newMarkers() *markers { return &markers{packages: map[string]*sources{}} }

func (m *markers) of(path string) *sources {
	if m.packages[path] == nil {
		m.packages[path] = parseSources(path)
	}
	return m.packages[path]
}

func parseSources(path string) *sources {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		panic(err)
	}
	parsed, err := parser.ParseDir(token.NewFileSet(), strings.TrimSpace(string(out)), nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}
	s := &sources{types: map[string][]string{}, fields: map[string]map[string][]string{}, consts: map[string][]string{}}
	for _, pkg := range parsed {
		for _, file := range pkg.Files {
			for _, decl := range file.Decls {
				if general, ok := decl.(*ast.GenDecl); ok {
					s.declare(general)
				}
			}
		}
	}
	return s
}

func (s *sources) declare(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.declareType(decl, spec)
		case *ast.ValueSpec:
			s.declareConst(spec)
		}
	}
}

func (s *sources) declareType(decl *ast.GenDecl, spec *ast.TypeSpec) {
	s.types[spec.Name.Name] = append(found(decl.Doc), found(spec.Doc)...)
	structType, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	fields := map[string][]string{}
	for _, field := range structType.Fields.List {
		for _, name := range fieldNames(field) {
			fields[name] = found(field.Doc)
		}
	}
	s.fields[spec.Name.Name] = fields
}

func fieldNames(field *ast.Field) []string {
	if len(field.Names) > 0 {
		names := []string{}
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
		return names
	}
	switch t := field.Type.(type) {
	case *ast.Ident:
		return []string{t.Name}
	case *ast.SelectorExpr:
		return []string{t.Sel.Name}
	}
	return nil
}

func (s *sources) declareConst(spec *ast.ValueSpec) {
	named, ok := spec.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, value := range spec.Values {
		if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			s.consts[named.Name] = append(s.consts[named.Name], text)
		}
	}
}

func found(doc *ast.CommentGroup) []string {
	if doc == nil {
		return nil
	}
	result := []string{}
	for _, line := range doc.List {
		if text := strings.TrimSpace(strings.TrimPrefix(line.Text, "//")); strings.HasPrefix(text, "+") {
			result = append(result, text[1:])
		}
	}
	return result
}

func values(list []string, name string) []string {
	result := []string{}
	for _, marker := range list {
		if value, ok := strings.CutPrefix(marker, name+"="); ok {
			result = append(result, value)
		}
	}
	return result
}

func has(list []string, name string) bool {
	for _, marker := range list {
		if marker == name {
			return true
		}
	}
	return false
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func (m *markers) structType(t reflect.Type) string {
	return last(values(m.of(t.PkgPath()).types[t.Name()], "structType"))
}

func (m *markers) describe(owner reflect.Type, f reflect.StructField, element reflect.Type, field *Field) {
	list := m.of(owner.PkgPath()).fields[owner.Name()][f.Name]
	field.Required = has(list, "required") || (!field.OmitEmpty && !has(list, "optional") && !field.Inline)
	field.ListType = last(values(list, "listType"))
	field.ListMapKeys = values(list, "listMapKey")
	field.MapType = last(append(values(list, "mapType"), values(list, "structType")...))
	if text := last(values(list, "default")); text != "" && !strings.HasPrefix(text, "ref(") {
		if err := json.Unmarshal([]byte(text), &field.Default); err != nil {
			panic(text)
		}
	}
	if element.PkgPath() == "" || element.Kind() != reflect.String {
		return
	}
	if origin := m.of(element.PkgPath()); has(origin.types[element.Name()], "enum") {
		field.Enum = append(field.Enum, origin.consts[element.Name()]...)
		sort.Strings(field.Enum)
	}
}
