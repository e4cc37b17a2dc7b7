/* Buffered files of the C library: text, binary, both ways, and at places. */
#include "say.h"
#include <stdio.h>

int main(void) {
  char line[80];
  FILE *file = fopen("notes.txt", "w");
  say("open", file != 0);
  if (!file) return 1;
  for (int i = 0; i < 2000; i++) fputs(i % 3 ? "a short line\n" : "a line that is somewhat longer\n", file);
  say("at", ftell(file));
  fclose(file);
  file = fopen("notes.txt", "r");
  int lines = 0, length = 0;
  while (fgets(line, sizeof line, file)) lines++, length += strlen(line);
  say("lines", lines);
  say("length", length);
  say("end", feof(file) != 0);
  fseek(file, 31 + 13, SEEK_SET);
  fgets(line, sizeof line, file);
  say_text(line);
  ungetc('Z', file);
  say("pushed back", getc(file));
  fseek(file, -13, SEEK_END);
  say("last", fread(line, 1, sizeof line, file));
  fclose(file);
  file = fopen("notes.txt", "a+");
  fputs("appended\n", file);
  rewind(file);
  fgets(line, 7, file);
  say_text(line);
  fputs("again\n", file);
  fflush(file);
  fseek(file, 0, SEEK_END);
  say("size", ftell(file));
  fclose(file);
  file = fopen("notes.txt", "r+");
  fputs("THE", file);
  fseek(file, 0, SEEK_SET);
  fgets(line, sizeof line, file);
  say_text(line);
  fclose(file);
  say("absent", fopen("absent", "r") == 0);
  say("remove", remove("notes.txt"));
  say("removed", fopen("notes.txt", "r") == 0);
  return 3;
}
