module reside.example/tests/probe

go 1.26
